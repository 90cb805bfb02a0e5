"""`vlrl env`: environments listed, checked and measured."""
