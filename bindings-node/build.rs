//! Sets the linker options of an addon.

fn main() {
    napi_build::setup();
}
