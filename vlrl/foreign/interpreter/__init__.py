"""What runs in an interpreter that has not vlrl but a package of others: the standard library only."""
