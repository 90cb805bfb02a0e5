"""The browser: started, walled in, asked over a pipe, drawn."""
