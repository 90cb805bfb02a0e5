"""Where environments run: in the event loop, in threads, or in processes, and within time limits."""
