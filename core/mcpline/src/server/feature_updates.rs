//! Changes of the definitions of registered features.

use mcpline_protocol::vocabulary::{Prompt, Resource, ResourceTemplate, Tool};

use crate::error::Error;
use crate::sync::Arc;

use super::Server;
use super::call_kind::CallKind;
use super::feature_entries::{FeatureEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};

impl Server {
    /// Changes the definition of a tool, also its name. Handler, options and place in the list remain. Connected clients
    /// are notified.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there is no such tool, or it is one of a mounted server; the new
    /// definition is invalid (see [`Server::add_tool`]) or its name taken; or the schema of the arguments changed, but the
    /// handler [decodes them itself](super::ToolOptions::decodes_itself).
    pub fn update_tool(&self, name: &str, change: impl FnOnce(&mut Tool)) -> Result<(), Error> {
        self.try_update_tool(name, |definition| {
            change(definition);
            Ok(())
        })
    }

    /// Changes a definition, unless the change fails.
    pub(crate) fn try_update_tool(
        &self,
        name: &str,
        change: impl FnOnce(&mut Tool) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.replace_feature(name, |entry: &ToolEntry| {
            let mut tool = entry.tool.clone();
            change(&mut tool)?;
            if entry.options.decodes_itself && tool.input_schema != entry.tool.input_schema {
                return Err(Error::usage(format!(
                    "the input schema of the tool {name} is that of its function: remove the tool and add it again"
                )));
            }
            let (options, handler) = (entry.options.clone(), entry.handler.clone());
            let rate = entry.bucket.as_ref().map(|(rate, _)| *rate);
            let mut changed = ToolEntry::new(tool, options, handler, rate)?;
            changed.bucket.clone_from(&entry.bucket);
            Ok(changed)
        })
    }

    /// Changes the definition of a resource, also its URI; see [`Server::update_tool`].
    ///
    /// # Errors
    ///
    /// As for [`Server::update_tool`].
    pub fn update_resource(
        &self,
        uri: &str,
        change: impl FnOnce(&mut Resource),
    ) -> Result<(), Error> {
        self.try_update_resource(uri, |definition| {
            change(definition);
            Ok(())
        })
    }

    /// Changes a definition, unless the change fails.
    pub(crate) fn try_update_resource(
        &self,
        uri: &str,
        change: impl FnOnce(&mut Resource) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.replace_feature(uri, |entry: &ResourceEntry| {
            let mut resource = entry.resource.clone();
            change(&mut resource)?;
            ResourceEntry::new(resource, entry.options.clone(), entry.handler.clone())
        })
    }

    /// Changes the definition of a resource template; see [`Server::update_tool`].
    ///
    /// # Errors
    ///
    /// As for [`Server::update_tool`].
    pub fn update_resource_template(
        &self,
        template: &str,
        change: impl FnOnce(&mut ResourceTemplate),
    ) -> Result<(), Error> {
        self.try_update_resource_template(template, |definition| {
            change(definition);
            Ok(())
        })
    }

    /// Changes a definition, unless the change fails.
    pub(crate) fn try_update_resource_template(
        &self,
        template: &str,
        change: impl FnOnce(&mut ResourceTemplate) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.replace_feature(template, |entry: &TemplateEntry| {
            let mut template = entry.template.clone();
            change(&mut template)?;
            let (options, handler) = (entry.options.clone(), entry.handler.clone());
            let mut changed = TemplateEntry::new(template, options, handler)?;
            changed.list.clone_from(&entry.list);
            Ok(changed)
        })
    }

    /// Whether there is a resource template, enabled or not.
    pub(crate) fn has_resource_template(&self, template: &str) -> bool {
        self.inner().registry().templates.item(template).is_some()
    }

    /// Changes the definition of a prompt, also its name; see [`Server::update_tool`].
    ///
    /// # Errors
    ///
    /// As for [`Server::update_tool`].
    pub fn update_prompt(&self, name: &str, change: impl FnOnce(&mut Prompt)) -> Result<(), Error> {
        self.try_update_prompt(name, |definition| {
            change(definition);
            Ok(())
        })
    }

    /// Changes a definition, unless the change fails.
    pub(crate) fn try_update_prompt(
        &self,
        name: &str,
        change: impl FnOnce(&mut Prompt) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.replace_feature(name, |entry: &PromptEntry| {
            let mut prompt = entry.prompt.clone();
            change(&mut prompt)?;
            PromptEntry::new(prompt, entry.options.clone(), entry.handler.clone())
        })
    }

    /// Puts a changed entry in the place of a feature.
    pub(super) fn replace_feature<T: FeatureEntry>(
        &self,
        name: &str,
        changed: impl FnOnce(&T) -> Result<T, Error>,
    ) -> Result<(), Error> {
        let kind = T::KIND.name();
        let registry = self.inner().registry();
        let item = T::list(&registry)
            .item(name)
            .ok_or_else(|| Error::usage(format!("there is no {kind} {name}")))?;
        if item.origin.is_some() {
            let otherwise = match T::KIND {
                CallKind::Tool => ", or pass its changes when you mount the server (`tools`)",
                _ => "",
            };
            return Err(Error::usage(format!(
                "the {kind} {name} is one of a mounted server: update it there{otherwise}"
            )));
        }
        let entry = Arc::new(changed(&item.entry)?);
        let new_name: Arc<str> = entry.key().into();
        let renamed = new_name.clone();
        // Dropped once the registry is unlocked.
        let mut replaced = None;
        let mut outcome = Err(format!(
            "the {kind} {name} was removed or changed meanwhile"
        ));
        let updated = self.inner().register(T::CHANGE, |registry| {
            let enabled = registry.enables(&*entry);
            let list = T::list_mut(registry);
            if list
                .item(name)
                .is_none_or(|present| !Arc::ptr_eq(present, item))
            {
                return false;
            }
            if *new_name != *name && list.item(&new_name).is_some() {
                outcome = Err(format!("there is a {kind} {new_name} already"));
                return false;
            }
            replaced = list.replace(name, new_name.clone(), entry, enabled);
            if T::IS_COMPLETED && *new_name != *name {
                registry.rename_completers(name, &new_name);
            }
            outcome = Ok(());
            true
        });
        drop(replaced);
        if *renamed != *name {
            self.inner().publish_missing();
        }
        match updated {
            Some(()) => Ok(()),
            None => outcome.map_err(Error::usage),
        }
    }
}
