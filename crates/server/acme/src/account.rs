//! The account at an authority. It is stored under a hash of the authority's URL, and used nowhere else.
//!
//! Invariant: one node at a time creates an account, under a lock, and reads the storage again before.

use crate::client::AuthorityClient;
use crate::failure::OrderFailure;
use crate::storage::{Storage, StorageKey, ValueKind};
use certificates::FailureCause;
use config::Acme;
use instant_acme::{Account, AccountCredentials, Error, ExternalAccountKey, NewAccount};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long another node may take to create the account.
const CREATED_WITHIN: Duration = Duration::from_secs(60);
/// How often the storage is read meanwhile.
const LOOK: Duration = Duration::from_millis(250);

/// An account as stored.
#[derive(Serialize, Deserialize)]
struct AccountRecord {
    /// The directory of the authority.
    directory: String,
    /// The address that the authority got. It may have refused it.
    email: Option<String>,
    /// The URL and the key of the account.
    credentials: AccountCredentials,
}

/// Opens the account at an authority, and creates it if there is none.
///
/// # Errors
/// The authority or the storage refuses.
pub async fn open(
    config: &Acme,
    directory: &str,
    storage: &Storage,
    client: &AuthorityClient,
) -> Result<Account, OrderFailure> {
    let name = account_name(directory);
    if let Some(account) = stored(config, directory, storage, client, &name).await? {
        return Ok(account);
    }
    let lock_name = format!("account-{name}");
    let locked = async {
        loop {
            if let Some(lock) = storage.lock(&lock_name).await.map_err(of_storage)? {
                return Ok(lock);
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let lock = tokio::time::timeout(CREATED_WITHIN, locked).await.map_err(|_| {
        OrderFailure::of(FailureCause::Storage, "another node does not finish its account")
    })??;
    let opened = match stored(config, directory, storage, client, &name).await {
        Ok(None) => tokio::select! {
            created = create(config, directory, storage, client, &name) => created,
            () = lock.keep() => Err(of_storage("another node has the lock of the account".into())),
        },
        Ok(Some(account)) => Ok(account),
        Err(failure) => Err(failure),
    };
    lock.release().await;
    opened
}

/// Removes the stored account, which the authority does not know any more. The next round creates another one.
pub async fn forget(directory: &str, storage: &Storage) {
    let name = account_name(directory);
    // If that fails, the next round fails in the same way, and removes it.
    let _ = storage.remove(StorageKey { kind: ValueKind::Account, name: &name }).await;
}

/// The stored account, if there is one. A changed address is sent to the authority; if that refuses it, the
/// account keeps the old one.
async fn stored(
    config: &Acme,
    directory: &str,
    storage: &Storage,
    client: &AuthorityClient,
    name: &str,
) -> Result<Option<Account>, OrderFailure> {
    let key = StorageKey { kind: ValueKind::Account, name };
    let Some(bytes) = storage.read(key).await.map_err(of_storage)? else { return Ok(None) };
    // A damaged account is like none: another one replaces it.
    let record = serde_json::from_slice::<AccountRecord>(&bytes).ok();
    let Some(record) = record.filter(|record| record.directory == directory) else {
        return Ok(None);
    };
    let is_changed = record.email != config.email;
    let builder = Account::builder_with_http(Box::new(client.clone()));
    let account = match builder.from_credentials(record.credentials).await {
        Err(Error::KeyRejected) => return Ok(None),
        account => account.map_err(|error| OrderFailure::of_error(&error, None))?,
    };
    if is_changed {
        let contact = contact(config);
        let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
        match account.update_contacts(&contact).await {
            Err(error) if is_about_contact(&error) => warn_of_contact(directory, &error),
            updated => updated.map_err(|error| OrderFailure::of_error(&error, None))?,
        }
        // The credentials are not readable twice, so the record is changed as JSON.
        if let Ok(mut json) = serde_json::from_slice::<serde_json::Value>(&bytes) {
            json["email"] = config.email.clone().into();
            storage.write(key, json.to_string().as_bytes()).await.map_err(of_storage)?;
        }
    }
    Ok(Some(account))
}

async fn create(
    config: &Acme,
    directory: &str,
    storage: &Storage,
    client: &AuthorityClient,
    name: &str,
) -> Result<Account, OrderFailure> {
    let contact = contact(config);
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let bound = config.eab.as_ref().filter(|_| directory == config.directory);
    let bound = bound.map(|eab| ExternalAccountKey::new(eab.key_id.clone(), &eab.key.0));
    let create = async |contact: &[&str]| {
        let new =
            NewAccount { contact, terms_of_service_agreed: true, only_return_existing: false };
        let builder = Account::builder_with_http(Box::new(client.clone()));
        builder.create(&new, directory.to_owned(), bound.as_ref()).await
    };
    let created = match create(&contact).await {
        Err(error) if is_about_contact(&error) && !contact.is_empty() => {
            warn_of_contact(directory, &error);
            create(&[]).await
        }
        created => created,
    };
    let (account, credentials) = created.map_err(|error| OrderFailure::of_error(&error, None))?;
    let (directory, email) = (directory.to_owned(), config.email.clone());
    let record = AccountRecord { directory, email, credentials };
    let bytes = serde_json::to_vec(&record)
        .map_err(|error| OrderFailure::of(FailureCause::Storage, &error.to_string()))?;
    let key = StorageKey { kind: ValueKind::Account, name };
    storage.write(key, &bytes).await.map_err(of_storage)?;
    Ok(account)
}

/// Whether the authority refuses the address (RFC 8555 section 7.3). Certificates do not depend on it.
fn is_about_contact(error: &Error) -> bool {
    let Error::Api(problem) = error else { return false };
    let name = problem.r#type.as_deref().and_then(|name| name.rsplit(':').next());
    matches!(name, Some("invalidContact" | "unsupportedContact" | "invalidEmail"))
}

fn warn_of_contact(directory: &str, error: &Error) {
    let error = OrderFailure::of_error(error, None).text;
    tracing::warn!(event = "certificate-contact-refused", directory, error);
}

fn contact(config: &Acme) -> Vec<String> {
    config.email.iter().map(|email| format!("mailto:{email}")).collect()
}

/// The name of the account at an authority.
fn account_name(directory: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, directory.as_bytes());
    digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn of_storage(why: String) -> OrderFailure {
    OrderFailure::of(FailureCause::Storage, &why)
}
