//! One request to a php-fpm, as a web server makes it: FastCGI over a Unix socket.
//!
//! A connection carries one request. Reads are limited in time and in bytes. Not here: which script answers a
//! path, and the records of the protocol (the crate `fastcgi`).

use bytes::{Bytes, BytesMut};
use fastcgi::{AfterRequest, Event, Params, ParamsLimits, ResponseReader, STDIN_END, split_stdin};
use harness::Response;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long php-fpm may be silent.
const PATIENCE: Duration = Duration::from_secs(60);
/// The maximum length of a response in bytes.
const RESPONSE_BYTES: usize = 64 << 20;

/// Sends a request with these variables and this content, and reads the response.
///
/// # Errors
/// A message, if the connection fails or the response is not valid.
pub fn ask(
    socket: &Path,
    variables: &[(String, String)],
    content: &[u8],
) -> Result<Response, String> {
    let mut params = Params::new(ParamsLimits::default());
    for (name, value) in variables {
        params.push(name, value).map_err(|error| format!("php-fpm: {error}"))?;
    }
    let fault = |error: std::io::Error| format!("php-fpm: {}: {error}", socket.display());
    let mut stream = UnixStream::connect(socket).map_err(fault)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(fault)?;
    stream.write_all(&params.into_request_start(AfterRequest::Close)).map_err(fault)?;
    let mut content = Bytes::copy_from_slice(content);
    while let Some((header, part)) = split_stdin(&mut content) {
        stream.write_all(&header).and_then(|()| stream.write_all(&part)).map_err(fault)?;
    }
    stream.write_all(&STDIN_END).map_err(fault)?;
    response(&output(&mut stream)?)
}

/// The output of the script.
fn output(stream: &mut UnixStream) -> Result<Vec<u8>, String> {
    let (mut reader, mut input, mut output) = (ResponseReader::new(), BytesMut::new(), Vec::new());
    let mut chunk = vec![0; 64 << 10];
    loop {
        while let Some(event) =
            reader.read(&mut input).map_err(|error| format!("php-fpm: {error}"))?
        {
            match event {
                Event::Stdout(bytes) => output.extend_from_slice(&bytes),
                Event::Stderr(bytes) => eprintln!("php: {}", String::from_utf8_lossy(&bytes)),
                Event::End(_) => return Ok(output),
            }
        }
        if output.len() > RESPONSE_BYTES {
            return Err(format!("php-fpm: a response of more than {RESPONSE_BYTES} bytes"));
        }
        match stream.read(&mut chunk).map_err(|error| format!("php-fpm: {error}"))? {
            0 => return Err("php-fpm: closed the connection before the end".to_owned()),
            length => input.extend_from_slice(&chunk[..length]),
        }
    }
}

/// Splits a CGI response (RFC 3875, section 6) into fields and content.
fn response(output: &[u8]) -> Result<Response, String> {
    let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let end = end.ok_or("php-fpm: a response without the end of its head")?;
    let head = String::from_utf8_lossy(&output[..end]);
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let fields: Vec<_> =
        fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim())).collect();
    let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let mut response = Response::new(200, &fields, &output[end + 4..]);
    let status = response.header("status").and_then(|value| value.get(..3)?.parse().ok());
    response.status = status.unwrap_or(200);
    Ok(response)
}
