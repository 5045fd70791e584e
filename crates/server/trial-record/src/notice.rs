//! Circumstances that limit a trial, each as a sentence of the report.
//!
//! They are noted while they last, and not counted. Their order here is that of the report.

/// A circumstance that keeps a trial from judging, or that the operator has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrialNotice {
    /// There is no directory for the record: it ends with this process.
    NoDirectory,
    /// The record could not be saved when this was tried last.
    NotSaved,
    /// No page may be stored, so nothing is compared.
    NothingStored,
    /// A proxy in front is not trusted, so that the visitors' addresses are unknown. It may be a cache.
    CdnInFront,
    /// Behind a trusted proxy is a cache or CDN, which may answer visitors, so that few arrive here.
    TrustedCache,
    /// One address makes more than half of the requests, or few are known, so `trial.serve` is not followed. Only the
    /// report looks at this.
    RampRefused,
    /// A database or the cluster's stream is not followed, so nothing is judged. Only the report looks at this.
    DatabaseNotFollowed,
    /// The origin fails, so little is compared.
    OriginFailing,
    /// The origin had no two free places when a page was to be rendered last, so little is compared.
    OriginFull,
    /// Pages that write to the database at each view are not compared.
    WritesAtEachView,
}

impl TrialNotice {
    /// The sentence of the report.
    pub fn sentence(self) -> &'static str {
        match self {
            TrialNotice::NoDirectory => {
                "The record is in memory only and ends with this process: set snapshot.directory. With \
                 snapshot.unwatched = \"drop\", the record is kept, and no page of a site without [[database]]."
            }
            TrialNotice::NotSaved => {
                "The record is in memory only, because its file cannot be written: see record-not-saved in the log."
            }
            TrialNotice::NothingStored => "No page may be stored so far, so nothing is compared.",
            TrialNotice::CdnInFront => {
                "A cache or CDN in front of Pagewell may store answers. Only the requests that pass it are counted. Name \
                 each proxy in front, so that the visitors' addresses are known: trusted_proxies = [\"127.0.0.1\"], with \
                 its address."
            }
            TrialNotice::TrustedCache => {
                "A CDN or cache in front of Pagewell may answer visitors itself. Only the requests that pass it are \
                 counted and compared: let it pass all of them during the trial."
            }
            TrialNotice::RampRefused => {
                "One address makes more than half of the last requests, or fewer than 16 have arrived, so trial.serve is \
                 not followed. Name a proxy in front by its address: trusted_proxies = [\"127.0.0.1\"]."
            }
            TrialNotice::DatabaseNotFollowed => {
                "A database, or the stream of the cluster, is not followed, so nothing is judged: see database-broken in \
                 the log."
            }
            TrialNotice::OriginFailing => "The origin fails, so few pages are compared.",
            TrialNotice::OriginFull => {
                "The origin has no place to spare, so few pages are compared: visitors come first."
            }
            TrialNotice::WritesAtEachView => {
                "Some pages write to the database at each view. They are not judged."
            }
        }
    }
}
