"""What our records improve, settle or correct of published results: families state it, records carry it, one page."""
