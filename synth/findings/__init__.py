"""What our records improve, settle, qualify or correct of published results: families
state it, records carry it."""
