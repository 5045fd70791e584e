//! This node's copy of the certificates in use, in a private directory: a restart changes no certificate, also while
//! the shared storage is away, has lost its values, or has damaged ones.
//!
//! A copy of a value in Valkey is sealed with the same key: who can open it could read Valkey, too.
//!
//! Invariants: a copy is used only for a host for which the storage gave no usable certificate, and until it gives one
//! that is not older. A copy that is used replaces no newer certificate in the storage (`hosts::AcmeHosts::load`).
//! Keys of session tickets, accounts and challenges have no copy.

use crate::hosts::AcmeHosts;
use crate::leaf::Bundle;
use crate::storage::{LockTimes, Seal, Storage, StorageKey, ValueKind};
use config::{Acme, AcmeStorage};
use telemetry::clock::Clock;

/// Maximum number of copies that are written after a look.
const WRITES_MAX: usize = 64;

/// The directory of the copies.
pub struct LocalCopies {
    directory: Storage,
    seal: Option<Seal>,
}

impl LocalCopies {
    /// The configured directory, if there is one. Nothing is read here.
    pub fn new(config: &Acme, clock: &Clock) -> Option<LocalCopies> {
        let path = AcmeStorage::Directory(config.copy.clone()?);
        let directory = Storage::new(&path, LockTimes::default(), clock.clone());
        let seal = match &config.storage {
            AcmeStorage::Directory(_) => None,
            AcmeStorage::Valkey { seal_key, .. } => Some(Seal::new(&seal_key.0)),
        };
        Some(LocalCopies { directory, seal })
    }

    /// Reads the copy of a host; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or was sealed with another key: a sentence for the operator.
    pub async fn read(&self, host: &str) -> Result<Option<Vec<u8>>, String> {
        let found = self.directory.read(key(host)).await.map_err(of_copy)?;
        match (found, &self.seal) {
            (Some(sealed), Some(seal)) => seal.open(sealed_for(host).as_bytes(), &sealed).map(Some),
            (found, _) => Ok(found),
        }
    }

    /// Writes the copy of a host, unless it is there already.
    ///
    /// # Errors
    /// The directory cannot be used: a sentence for the operator.
    pub async fn write(&self, host: &str, text: &[u8]) -> Result<(), String> {
        if self.read(host).await.is_ok_and(|found| found.as_deref() == Some(text)) {
            return Ok(());
        }
        let value = match &self.seal {
            Some(seal) => seal.close(sealed_for(host).as_bytes(), text)?,
            None => text.to_vec(),
        };
        self.directory.write(key(host), &value).await.map_err(of_copy)
    }
}

impl AcmeHosts {
    /// Uses the copies for hosts without a certificate. Without a copy, a stored certificate is used that is refused
    /// because others may read it: the site keeps its HTTPS, and the message has the command that helps. A storage that
    /// does not answer is not asked again.
    pub(crate) async fn use_copies(&self, has_answered: bool) {
        let mut failed = None;
        for host in self.hosts_that(|state| state.bundle.is_none()) {
            let copy = self.usable_copy(&host).await.unwrap_or_else(|why| {
                failed = failed.take().or(Some(why));
                None
            });
            let is_copied = copy.is_some();
            let found = match copy {
                None if has_answered && self.is_storage_unusable() => self.exposed(&host).await,
                copy => copy,
            };
            let Some((bundle, text)) = found else { continue };
            self.update(&host, |state| {
                // A task may have read one from the storage by now.
                if state.bundle.is_none() {
                    (state.bundle, state.text) = (Some(bundle), text);
                    (state.is_copy, state.is_copied) = (true, is_copied);
                }
            });
            self.note_changed();
        }
        if failed.is_some() {
            self.note_copies(failed);
        }
    }

    /// The certificate of a host's copy with its text; `None` without a copy.
    async fn usable_copy(&self, host: &str) -> Result<Option<(Bundle, Vec<u8>)>, String> {
        let Some(copies) = &self.copies else { return Ok(None) };
        let Some(text) = copies.read(host).await? else { return Ok(None) };
        let bundle =
            Bundle::read(host, &text).map_err(|why| format!("acme.copy: {host}: {why}"))?;
        Ok(Some((bundle, text)))
    }

    /// The stored certificate of a host that others may read.
    async fn exposed(&self, host: &str) -> Option<(Bundle, Vec<u8>)> {
        let text = self.storage.read_exposed(host).await?;
        Some((Bundle::read(host, &text).ok()?, text))
    }

    /// Copies the certificates that have changed.
    pub(crate) async fn write_copies(&self) {
        let Some(copies) = &self.copies else { return };
        let hosts = self.hosts_that(|state| state.bundle.is_some() && !state.is_copied);
        for host in hosts.into_iter().take(WRITES_MAX) {
            let Some(state) = self.state(&host) else { continue };
            let written = copies.write(&host, &state.text).await;
            self.note_copies(written.clone().err());
            if written.is_err() {
                return;
            }
            self.update(&host, |now| now.is_copied = now.text == state.text);
        }
    }
}

fn key(host: &str) -> StorageKey<'_> {
    StorageKey { kind: ValueKind::Certificate, name: host }
}

/// The name for which a copy is sealed: a value of the shared storage is never taken for one.
fn sealed_for(host: &str) -> String {
    format!("acme.copy: {host}")
}

fn of_copy(why: String) -> String {
    why.replacen("acme.storage", "acme.copy", 1)
}
