"""The sandbox of a desktop, and the processes and files inside."""
