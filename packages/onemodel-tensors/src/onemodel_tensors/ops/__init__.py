"""The operators, one family a file: the public function and its gradient side by side."""
