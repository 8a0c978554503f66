"""Problems on vectors: each variable has one of finitely many values."""
