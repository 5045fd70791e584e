//! The field `Authorization` of clients (Basic, RFC 7617).
//!
//! Any bytes are credentials within their bounds, or none.

use passwords::Credentials;

/// Reads the data as the value of the field, and as a token after the name of the scheme.
pub fn run(data: &[u8]) {
    for value in [data.to_vec(), [b"Basic ", data].concat()] {
        if let Some(credentials) = Credentials::read(&value) {
            let user = credentials.user();
            assert!(user.len() <= 255 && !user.contains(':') && !user.contains('\0'));
        }
    }
}
