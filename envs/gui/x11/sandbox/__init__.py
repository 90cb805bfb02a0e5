"""The walls around a desktop, and the processes and files inside."""
