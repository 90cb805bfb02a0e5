"""`vlrl view`: runs in the browser, served while they train, or written as one folder."""
