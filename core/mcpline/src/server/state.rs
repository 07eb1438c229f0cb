//! Values that a program keeps in a server, for its handlers.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;

use foldhash::quality::RandomState;

use crate::sync::{Arc, PoisonError, RwLock};

use super::{Context, HandlerError, Server};

/// The values of a server, at most one of each type.
#[derive(Default)]
pub(crate) struct State(RwLock<HashMap<TypeId, Arc<dyn Any + Send + Sync>, RandomState>>);

impl State {
    fn set<T: Send + Sync + 'static>(&self, value: T) {
        let value: Arc<dyn Any + Send + Sync> = Arc::new(value);
        let replaced = {
            let mut values = self.0.write().unwrap_or_else(PoisonError::into_inner);
            values.insert(TypeId::of::<T>(), value)
        };
        // Outside the lock: its destructor is the program's.
        drop(replaced);
    }

    fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let values = self.0.read().unwrap_or_else(PoisonError::into_inner);
        values.get(&TypeId::of::<T>())?.clone().downcast().ok()
    }
}

impl Server {
    /// Keeps a value for the handlers, which get it with [`Context::state`]. Replaces an earlier one of the same type.
    ///
    /// ```
    /// use mcpline::{Context, HandlerError, Server};
    ///
    /// struct Cities(Vec<String>);
    ///
    /// async fn cities(ctx: Context) -> Result<String, HandlerError> {
    ///     Ok(ctx.state::<Cities>()?.0.join(", "))
    /// }
    ///
    /// let server = Server::new("weather", "1.0.0")
    ///     .with_state(Cities(vec!["Bergen".into(), "Oslo".into()]))
    ///     .tool("cities", "The known cities", cities);
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn with_state<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.inner().state.set(value);
        self
    }

    /// Returns the value of this type that [`Server::with_state`] keeps.
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.inner().state.get()
    }
}

impl Context {
    /// Returns the value of this type that [`Server::with_state`] keeps.
    ///
    /// # Errors
    ///
    /// [`HandlerError::Internal`]: the server has no value of this type. The handler should return it: the message is
    /// logged and not sent to the client.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, HandlerError> {
        self.server().state.get().ok_or_else(|| {
            let name = type_name::<T>();
            HandlerError::Internal(format!(
                "the server has no state of the type {name}: set it with `Server::with_state`"
            ))
        })
    }
}
