"""The all-to-all of whole layers between columns: where spines have failed, at the size of whole machines."""
