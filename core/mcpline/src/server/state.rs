//! Values that a program keeps in a server, for its handlers.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;

use foldhash::quality::RandomState;

use crate::sync::{Arc, Mutex, PoisonError, RwLock};

use super::{Context, HandlerError, Server};

/// The values of a server, at most one of each type.
#[derive(Default)]
pub(crate) struct TypeMap(RwLock<HashMap<TypeId, Arc<dyn Any + Send + Sync>, RandomState>>);

impl TypeMap {
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

impl TypeMap {
    fn get_or_default<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        if let Some(value) = self.get() {
            return value;
        }
        // Outside the lock: its constructor is the program's.
        let made = Arc::new(T::default());
        let kept = {
            let mut values = self.0.write().unwrap_or_else(PoisonError::into_inner);
            let entry = values.entry(TypeId::of::<T>());
            let any: Arc<dyn Any + Send + Sync> = made.clone();
            entry.or_insert(any).clone()
        };
        // Another thread may have been faster.
        kept.downcast().unwrap_or(made)
    }
}

/// The values of a client's session, until it ends.
#[derive(Default)]
pub(crate) struct SessionValues(Mutex<Phase>);

#[derive(Default)]
enum Phase {
    #[default]
    Unused,
    Used(Arc<TypeMap>),
    Ended,
}

impl SessionValues {
    /// Returns the values; `None` once the session has ended.
    fn get(&self) -> Option<Arc<TypeMap>> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Phase::Unused = *values {
            *values = Phase::Used(Arc::default());
        }
        match &*values {
            Phase::Used(state) => Some(state.clone()),
            _ => None,
        }
    }

    /// Drops the values.
    pub(super) fn end(&self) {
        let ended = {
            let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *values, Phase::Ended)
        };
        // Outside the lock: their destructors are the program's.
        drop(ended);
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

    /// Returns the value of this type that lives as long as the client's session: `T::default()` at first.
    ///
    /// On stdio, in memory and on custom transports a session is the connection, over HTTP what `Mcp-Session-Id` names. The
    /// values are dropped when it ends; their number and size are the program's. They stay in this process, also if
    /// [several processes](crate::sharing) serve the session. Use a lock in `T` to change it: calls of a client may run at
    /// the same time.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// use mcpline::{Context, HandlerError, Server};
    ///
    /// #[derive(Default)]
    /// struct Calls(AtomicUsize);
    ///
    /// async fn count(ctx: Context) -> Result<usize, HandlerError> {
    ///     Ok(ctx.session_state::<Calls>()?.0.fetch_add(1, Ordering::Relaxed) + 1)
    /// }
    ///
    /// let server = Server::new("counter", "1.0.0").tool("count", "Counts the calls of a session", count);
    /// # drop(server);
    /// ```
    ///
    /// # Errors
    ///
    /// [`HandlerError::Internal`]: there is no session, or it has ended. 2026-07-28 has no sessions on any transport: state
    /// that spans requests is named by an identifier that the client passes (`basic`, statelessness). The handler should
    /// return the error: the message is logged and not sent to the client.
    pub fn session_state<T: Default + Send + Sync + 'static>(
        &self,
    ) -> Result<Arc<T>, HandlerError> {
        let value = self.session_value();
        value.map_err(|reason| HandlerError::Internal(reason.to_owned()))
    }

    /// [`Context::session_state`]; the error is why there is none.
    pub(crate) fn session_value<T: Default + Send + Sync + 'static>(
        &self,
    ) -> Result<Arc<T>, &'static str> {
        if self.revision().is_modern() {
            return Err(
                "there is no session state: revision 2026-07-28 has no sessions. Let the client pass an identifier with each \
                 request, or keep values by the authenticated caller",
            );
        }
        let connection = self.connection();
        let state = connection.session_state().ok_or(
            "there is no session state: this server serves HTTP without sessions (`stateless`)",
        )?;
        let values = state.get();
        let values = values.ok_or("there is no session state: the session has ended")?;
        Ok(values.get_or_default())
    }
}
