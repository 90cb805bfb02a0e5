"""`vlrl env serve`: environments over HTTP; the client is the environment `remote`."""
