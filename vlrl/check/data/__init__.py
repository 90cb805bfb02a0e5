"""What can go wrong with data is found here, before a GPU is rented: `vlrl data check`."""
