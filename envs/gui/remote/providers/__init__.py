"""How machines are started and put back: a command of one's own, docker, QEMU, or a class of one's own."""
