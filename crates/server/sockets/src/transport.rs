//! One type for several transports: an enum whose variants each hold a connection, read and written as one.
//!
//! Everything above such a type is compiled once. A read or write costs one branch more than with a type for each
//! transport. Not here: how a connection is opened, or which transports a type has.

/// Implements `AsyncRead` and `AsyncWrite` for an enum with these variants, each with one connection in it.
#[macro_export]
macro_rules! one_of_transports {
    ($stream:ident: $($transport:ident),+) => {
        impl ::tokio::io::AsyncRead for $stream {
            #[inline]
            fn poll_read(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                buffer: &mut ::tokio::io::ReadBuf<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                match self.get_mut() {
                    $($stream::$transport(io) => ::std::pin::Pin::new(io).poll_read(cx, buffer),)+
                }
            }
        }

        impl ::tokio::io::AsyncWrite for $stream {
            #[inline]
            fn poll_write(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                bytes: &[u8],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                match self.get_mut() {
                    $($stream::$transport(io) => ::std::pin::Pin::new(io).poll_write(cx, bytes),)+
                }
            }

            #[inline]
            fn poll_write_vectored(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                pieces: &[::std::io::IoSlice<'_>],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                match self.get_mut() {
                    $($stream::$transport(io) => {
                        ::std::pin::Pin::new(io).poll_write_vectored(cx, pieces)
                    })+
                }
            }

            #[inline]
            fn is_write_vectored(&self) -> bool {
                match self {
                    $($stream::$transport(io) => io.is_write_vectored(),)+
                }
            }

            #[inline]
            fn poll_flush(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                match self.get_mut() {
                    $($stream::$transport(io) => ::std::pin::Pin::new(io).poll_flush(cx),)+
                }
            }

            fn poll_shutdown(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                match self.get_mut() {
                    $($stream::$transport(io) => ::std::pin::Pin::new(io).poll_shutdown(cx),)+
                }
            }
        }
    };
}
