"""What this machine has for the locked packages and for what they compile at run time.

Standard library only: tools/install.py imports this folder before there is an environment.
"""
