//! One round for a host, under its lock: the storage is read again, then the authority is asked for the renewal time,
//! or a certificate is ordered.
//!
//! Invariants: the storage must be writable before the authority is called. A failure is stored with its waiting time
//! before the lock is released; if even that fails, memory has it. A certificate that could not be stored is used and
//! stored later, without a second order.

use crate::account;
use crate::client::AuthorityClient;
use crate::failure::OrderFailure;
use crate::hosts::{AcmeHosts, Authority, HostState};
use crate::leaf::Bundle;
use crate::order::{CLOCK_MS, OrderTask};
use crate::randomness::random_share;
use crate::record::{NameRecord, SuggestionRecord};
use crate::schedule::{
    HostStep, authority_at, bounded, challenge_kind, renewal, suggestion, wait_after,
};
use crate::storage::{HeldLock, StorageKey, ValueKind};
use certificates::FailureCause;
use instant_acme::{CertificateIdentifier, Error};

/// A failure that lies further in the future, in milliseconds, was recorded with a wrong clock.
const WRONG_CLOCK_MS: u64 = 60_000;

impl AcmeHosts {
    /// Acts for a host whose lock is held, if it is still due.
    pub(crate) async fn act(&self, host: &str, lock: &HeldLock) {
        if let Err(why) = self.load(host).await {
            return self.note_unusable_storage(host, why);
        }
        let Some(mut state) = self.state(host) else { return };
        if state.record.failed_at_ms > self.clock.now().0 + WRONG_CLOCK_MS {
            // It was recorded while the clock was wrong.
            state.record.failures = 0;
            state.record.refused_until_ms.clear();
            state.is_unsaved = true;
            self.update(host, |known| {
                (known.record, known.is_unsaved) = (state.record.clone(), true)
            });
        }
        if state.is_unsaved && !self.save_all(host, &state).await {
            return;
        }
        let mut is_due_there = false;
        if self.next_step(&state) == HostStep::AskRenewalTime {
            let (suggestion, theirs_ms) = self.ask_renewal_time(&state).await;
            state.record.suggestion = Some(suggestion);
            let record = state.record.clone();
            // A clock that is behind must not let a certificate end.
            is_due_there = state
                .bundle
                .as_ref()
                .is_some_and(|bundle| theirs_ms >= renewal(&record, bundle.lifetime));
            let is_saved = self.save_record(host, &record).await.is_ok();
            self.update(host, |state| (state.record, state.is_unsaved) = (record, !is_saved));
        }
        if is_due_there || self.next_step(&state) == HostStep::Order {
            self.order(host, lock, state).await;
        }
    }

    /// Notes in memory that a round was impossible, until the storage can be read again.
    pub(crate) fn note_unusable_storage(&self, host: &str, why: String) {
        let now_ms = self.clock.now().0;
        self.update(host, |state| {
            // A certificate in memory alone is to be stored as soon as possible.
            if state.is_unsaved {
                return;
            }
            let wait_ms = wait_after(state.record.failures + 1, None, random_share());
            state.record.fail(&why, FailureCause::Storage, now_ms, wait_ms);
        });
        self.note_storage(Some(why));
    }

    /// Orders a certificate, and records the result.
    async fn order(&self, host: &str, lock: &HeldLock, state: HostState) {
        if !self.may_order(host) {
            return;
        }
        let mut record = state.record.clone();
        // A full disk must be noticed before there is a certificate to store.
        let writable = self.save_record(host, &record).await;
        if writable.is_ok() {
            self.note_order(host);
        }
        let at = self.authority_of(&record, self.clock.now().0);
        let client = AuthorityClient::new(&self.clock, &self.trust);
        let ordered = match (&client, writable) {
            (_, Err(why)) => Err(OrderFailure::of(FailureCause::Storage, &why)),
            (Err(failure), _) => Err(failure.clone()),
            (Ok(client), Ok(())) => {
                self.try_authority(at, host, lock, &state, &mut record, client).await
            }
        };
        let now_ms = self.clock.now().0;
        let failure = match ordered {
            Ok((bundle, text)) => {
                self.count(true);
                tracing::info!(event = "certificate-issued", host, issuer = bundle.issuer);
                return self.use_certificate(host, bundle, text, record).await;
            }
            Err(failure) => failure,
        };
        self.count(false);
        let retry_after_ms = client.ok().and_then(|client| client.noted().retry_after_ms);
        if let Some(retry_after_ms) = retry_after_ms {
            let (directory, until_ms) =
                (self.authorities[at].directory.clone(), now_ms + bounded(retry_after_ms));
            record.refused_until_ms.insert(directory, until_ms);
        }
        let asked_ms = self.asked_wait_ms(&record, now_ms);
        let wait_ms = wait_after(record.failures + 1, asked_ms, random_share());
        record.fail(&failure.text, failure.cause, now_ms, wait_ms);
        let (error, remedy, retry_s) = (&failure.text, failure.cause.remedy(), wait_ms / 1000);
        tracing::warn!(event = "certificate-failed", host, error, remedy, retry_s);
        let is_saved = self.save_record(host, &record).await.is_ok();
        self.update(host, |state| (state.record, state.is_unsaved) = (record, !is_saved));
    }

    /// The position of the authority whose turn it is.
    fn authority_of(&self, record: &NameRecord, now_ms: u64) -> usize {
        let waits =
            |at: usize| record.asked_wait_ms(&self.authorities[at].directory, now_ms).is_some();
        authority_at(record.failures, self.authorities.len(), waits)
    }

    /// The shortest time that an authority asks to wait; `None` if one of them does not.
    fn asked_wait_ms(&self, record: &NameRecord, now_ms: u64) -> Option<u64> {
        let asked = |one: &Authority| record.asked_wait_ms(&one.directory, now_ms);
        self.authorities.iter().map(asked).collect::<Option<Vec<u64>>>()?.into_iter().min()
    }

    /// Orders at the authority whose turn it is. After a failure, its server for rehearsals comes first.
    async fn try_authority(
        &self,
        at: usize,
        host: &str,
        lock: &HeldLock,
        state: &HostState,
        record: &mut NameRecord,
        client: &AuthorityClient,
    ) -> Result<(Bundle, String), OrderFailure> {
        let Some(kind) = challenge_kind(record.failures, &self.kinds) else {
            return Err(OrderFailure::of(
                FailureCause::Port80,
                "no listener can answer challenges",
            ));
        };
        let authority = &self.authorities[at];
        let task = OrderTask {
            config: &self.config,
            storage: &self.storage,
            lock,
            host,
            directory: &authority.directory,
            rehearsal: authority.rehearsal.as_deref().filter(|_| record.failures > 0),
            kind,
            pending: &state.challenge,
            client,
            current: state.bundle.as_ref().map(|bundle| (bundle, &state.text[..])),
            now_ms: self.clock.now().0,
        };
        task.run(record).await.inspect(|_| record.succeed(&authority.directory))
    }

    /// Stores a certificate, and uses it also if that fails.
    pub(crate) async fn use_certificate(
        &self,
        host: &str,
        bundle: Bundle,
        text: String,
        record: NameRecord,
    ) {
        let mut state = self.state(host).unwrap_or_default();
        (state.text, state.record) = (text.into_bytes(), record);
        let is_saved = self.save_all(host, &state).await;
        self.update(host, |now| {
            now.set_bundle(bundle, state.text);
            (now.record, now.is_unsaved) = (state.record, !is_saved);
        });
        self.note_changed();
    }

    /// Asks the authority of the certificate for its renewal time. Without an answer, the known one stays. Also returns
    /// the time: the authority's, if this machine's clock is wrong by more than an hour.
    async fn ask_renewal_time(&self, state: &HostState) -> (SuggestionRecord, u64) {
        let (before, now_ms) = (state.record.suggestion.as_ref(), self.clock.now().0);
        let known_ms = before.and_then(|before| before.window_ms);
        let client = AuthorityClient::new(&self.clock, &self.trust).ok();
        let asked = async {
            let directory = state.record.issued_by.as_ref()?;
            let is_known = |authority: &&Authority| authority.directory == *directory;
            self.authorities.iter().find(is_known)?;
            let id = CertificateIdentifier::try_from(state.bundle.as_ref()?.leaf()).ok()?;
            let client = client.as_ref()?;
            let account = account::open(&self.config, directory, &self.storage, client).await;
            Some(match account.ok()?.renewal_info(&id).await {
                Ok((info, _)) => {
                    let window = info.suggested_window;
                    let ms =
                        |seconds: i64| u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
                    let ends = (window.start.unix_timestamp(), window.end.unix_timestamp());
                    Some((ms(ends.0), ms(ends.1)))
                }
                Err(Error::Unsupported(_)) => None,
                Err(_) => known_ms,
            })
        };
        let window_ms = asked.await.unwrap_or(known_ms);
        let ahead_ms = client.and_then(|client| client.noted().ahead_ms);
        let ahead_ms = ahead_ms.filter(|ahead_ms| ahead_ms.unsigned_abs() > CLOCK_MS);
        let theirs_ms = now_ms.saturating_add_signed(ahead_ms.unwrap_or(0));
        (suggestion(before, window_ms, now_ms, random_share()), theirs_ms)
    }

    async fn save_record(&self, host: &str, record: &NameRecord) -> Result<(), String> {
        let bytes = serde_json::to_vec(record).map_err(|error| error.to_string())?;
        let key = StorageKey { kind: ValueKind::Host, name: host };
        let saved = self.storage.write(key, &bytes).await;
        self.note_storage(saved.clone().err());
        saved
    }

    /// Stores what memory has about a host. Returns whether it is stored.
    async fn save_all(&self, host: &str, state: &HostState) -> bool {
        let key = StorageKey { kind: ValueKind::Certificate, name: host };
        let mut saved = Ok(());
        if !state.text.is_empty() {
            saved = self.storage.write(key, &state.text).await;
        }
        self.note_storage(saved.clone().err());
        let is_saved = saved.is_ok() && self.save_record(host, &state.record).await.is_ok();
        if is_saved {
            self.update(host, |state| state.is_unsaved = false);
        }
        is_saved
    }
}
