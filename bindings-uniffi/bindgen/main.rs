//! Writes the code of other languages for this library: `tools/kotlin` and `tools/swift` run it.

fn main() {
    uniffi::uniffi_bindgen_main();
}
