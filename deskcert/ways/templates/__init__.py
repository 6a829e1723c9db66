"""Files that `deskcert init` and `deskcert agent new` write."""
