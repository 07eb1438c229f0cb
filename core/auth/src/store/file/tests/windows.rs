//! What only Windows has: access control lists.

use std::os::windows::fs::symlink_file;

use mcpline_windows::{OtherUsersAccess, set_access};

use super::*;

/// Gives rights to everyone (WD).
fn set_rights_of_others(path: &Path, rights: &str) {
    set_access(path, &format!("(A;;{rights};;;WD)")).expect("permitted");
}

#[runtimes::test]
async fn only_the_owner_has_access() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("k", b"v").await.expect("saved");
    drop(store.lock("k").await.expect("locked"));
    let mut files = 0;
    for entry in fs::read_dir(scratch.path()).expect("read") {
        let file = fs::File::open(entry.expect("an entry").path()).expect("opened");
        let access = OtherUsersAccess::of(&file).expect("examined");
        assert!(!access.is_owner && !access.can_read && !access.can_change);
        files += 1;
    }
    assert_eq!(files, 2, "a value and a lock, and nothing left over");
}

#[runtimes::test]
async fn a_file_that_others_can_access_is_refused() {
    let scratch = Scratch::new();
    let store = scratch.store();
    for rights in ["FR", "FW", "FA"] {
        store.save("k", b"v").await.expect("saved");
        set_rights_of_others(&scratch.file("k"), rights);
        assert_eq!(code(store.load("k").await), "unsafe", "{rights}");
        // Saving makes it safe again: it creates a new file.
        store.save("k", b"w").await.expect("saved");
        let loaded = store.load("k").await.expect("loaded");
        assert_eq!(loaded.as_deref(), Some(&b"w"[..]), "{rights}");
    }
}

#[runtimes::test]
async fn a_lock_file_that_others_can_access_is_refused() {
    let scratch = Scratch::new();
    let store = scratch.store();
    drop(store.lock("k").await.expect("locked"));
    let lock = scratch.path().join(format!("{}.lock", file_name("k")));
    set_rights_of_others(&lock, "FW");
    assert_eq!(code(store.lock("k").await), "unsafe");
}

#[runtimes::test]
async fn a_directory_that_others_can_write_to_is_refused() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("k", b"v").await.expect("saved");
    for rights in ["FW", "FA"] {
        set_rights_of_others(&scratch.path(), rights);
        assert_eq!(code(store.load("k").await), "unsafe", "{rights}");
        assert_eq!(code(store.save("k", b"v").await), "unsafe", "{rights}");
        assert_eq!(code(store.remove("k").await), "unsafe", "{rights}");
        assert_eq!(code(store.lock("k").await), "unsafe", "{rights}");
    }
    set_rights_of_others(&scratch.path(), "FR");
    store.load("k").await.expect("others see names at most");
}

#[runtimes::test]
async fn rejects_directories_in_place_of_files_and_files_in_place_of_the_directory() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("other", b"v").await.expect("saved");
    fs::create_dir(scratch.file("directory")).expect("made");
    assert_eq!(code(store.load("directory").await), "unsafe");
    fs::write(scratch.0.join("file"), "").expect("written");
    let store = FileStore::new(scratch.0.join("file"));
    assert_eq!(code(store.load("k").await), "unsafe");
}

#[runtimes::test]
async fn symbolic_links_are_refused_and_never_written_through() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("k", b"v").await.expect("saved");
    let target = scratch.0.join("target");
    fs::rename(scratch.file("k"), &target).expect("moved");
    symlink_file(&target, scratch.file("k")).expect("linked");
    assert_eq!(code(store.load("k").await), "unsafe");
    let before = fs::read(&target).expect("read");
    store
        .save("k", b"w")
        .await
        .expect("saved in place of the link");
    assert_eq!(fs::read(&target).expect("read"), before);

    let lock = scratch.path().join(format!("{}.lock", file_name("k")));
    symlink_file(scratch.0.join("victim"), lock).expect("linked");
    assert_eq!(code(store.lock("k").await), "unsafe");
    assert!(!scratch.0.join("victim").exists());
}
