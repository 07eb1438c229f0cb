// SwiftPM wants a source in a target for C. The declarations are in include/, the code in the native library.
