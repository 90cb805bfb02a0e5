"""Apps for one kind of document each: slides, pictures, PDF files, programs."""
