"""Bridges to prebuilt kernel libraries: loaders for Rust, C++ and Python, generated from a C header and a TOML spec."""
