//! Writes the code of other languages for this library: `tools/kotlin` runs it.

fn main() {
    uniffi::uniffi_bindgen_main();
}
