//! Writes a request's content to a FastCGI responder as STDIN records, and reads the response at the
//! same time.
//!
//! Reading and writing each use one half of the socket, so a responder that answers before it has read
//! everything cannot cause a deadlock.

use super::RequestContent;
use bytes::{Buf, Bytes, BytesMut};
use fastcgi::{STDIN_END, split_stdin};
use http_body_util::BodyExt;
use sockets::Socket;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Reads from the responder. The time limit does not apply while content is still being written.
pub(super) async fn read_while_sending(
    reading: &mut ReadHalf<Socket>,
    writer: &mut JoinHandle<Option<WriteHalf<Socket>>>,
    input: &mut BytesMut,
    wait: Duration,
) -> Result<std::io::Result<usize>, tokio::time::error::Elapsed> {
    loop {
        match timeout(wait, reading.read_buf(input)).await {
            Err(_) if !writer.is_finished() => {}
            read => return read,
        }
    }
}

/// Writes a request's content. Returns its half of the connection if all was written, and `None` after
/// an error or if the responder takes nothing for `wait`.
pub(super) async fn send_content(
    content: RequestContent,
    mut writing: WriteHalf<Socket>,
    wait: Duration,
) -> Option<WriteHalf<Socket>> {
    match content {
        RequestContent::Empty => {}
        RequestContent::Stream(mut upload, _) => {
            while let Some(frame) = upload.frame().await {
                if let Ok(bytes) = frame.ok()?.into_data() {
                    write_records(&mut writing, bytes, wait).await.ok()?;
                }
            }
        }
    }
    timeout(wait, writing.write_all(&STDIN_END)).await.ok()?.ok()?;
    Some(writing)
}

async fn write_records(
    writing: &mut WriteHalf<Socket>,
    mut bytes: Bytes,
    wait: Duration,
) -> std::io::Result<()> {
    while let Some((header, chunk)) = split_stdin(&mut bytes) {
        let mut record = Buf::chain(&header[..], chunk);
        while record.has_remaining() {
            timeout(wait, writing.write_buf(&mut record)).await??;
        }
    }
    Ok(())
}
