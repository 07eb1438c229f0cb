//! A value that is dropped without the interpreter lock.

use std::ops::Deref;

use pyo3::Python;

/// A value whose drop may wait, such as a server whose audit log writes its last records: other threads of Python go on.
pub(crate) struct DetachedDrop<T: Send>(Option<T>);

impl<T: Send> DetachedDrop<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Send> Deref for DetachedDrop<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is taken when it is dropped")
    }
}

impl<T: Send> Drop for DetachedDrop<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        // An interpreter that ends has no other threads.
        let _ = Python::try_attach(|py| py.detach(|| drop(value)));
    }
}
