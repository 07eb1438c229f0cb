"""What `tools/release` is made of: one module for each kind of package, the platforms, and the toolchain that builds for them."""
