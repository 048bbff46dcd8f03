"""ck-post-build: lazily compiled Composable Kernel attention libraries, and checked bridges to prebuilt ones."""
