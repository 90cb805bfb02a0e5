"""What the operating system gives this process: signals, standard output, event loops, shared memory."""
