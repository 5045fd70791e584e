//! The one way to the origin: each request takes a permit for its class (`Origin::admit`), and holds it until its
//! response has been read.
//!
//! Which request gets the next permit is decided in `places`. Which class a request has is decided by its sender.

use telemetry::client::{Client, RequestPurpose};
use tokio::sync::OwnedSemaphorePermit;

/// What a request to the origin is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginClass {
    /// A client waits for a page that may be stored. Other clients may wait for the same response.
    Page,
    /// A client waits for a response that is for it alone: a request that bypasses the cache, or a private copy.
    Personal,
    /// A page that is being assembled waits for a fragment.
    Fragment,
    /// A request with an unsafe method. It must not be refused for the sake of others.
    Write,
    /// A request for another protocol. It holds its permit until the origin has answered, not for the connection.
    Upgrade,
    /// No client waits: the refresh of a stale page, cache warming, `[[wake]]`.
    Background,
}

/// What decides when a request may be sent to the origin.
#[derive(Clone, Debug)]
pub struct Admission {
    /// What the request is for.
    pub class: OriginClass,
}

impl Admission {
    /// The admission of a request for `client`, of this class if the client itself waits for it.
    pub fn of(client: &Client, class: OriginClass) -> Admission {
        let class = match client.extras.purpose {
            RequestPurpose::Client => class,
            RequestPurpose::Fragment => OriginClass::Fragment,
            RequestPurpose::Background => OriginClass::Background,
        };
        Admission { class }
    }
}

/// The right to occupy the origin; released when dropped. Only `Places::enter` makes one.
#[derive(Debug)]
pub struct OriginPermit {
    _place: OwnedSemaphorePermit,
}

impl OriginPermit {
    pub(crate) fn new(place: OwnedSemaphorePermit) -> OriginPermit {
        OriginPermit { _place: place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::client::ClientConnection;

    #[test]
    fn a_request_for_no_client_is_of_its_own_class() {
        let class_for = |purpose| {
            let mut client = Client::of(ClientConnection::none("http").into());
            client.extras.purpose = purpose;
            Admission::of(&client, OriginClass::Page).class
        };
        assert_eq!(class_for(RequestPurpose::Client), OriginClass::Page);
        assert_eq!(class_for(RequestPurpose::Fragment), OriginClass::Fragment);
        assert_eq!(class_for(RequestPurpose::Background), OriginClass::Background);
    }
}
