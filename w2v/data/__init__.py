"""Small data sets written for this project, and the program that generates them."""
