//! One client connection of the benchmark: HTTP/1.1 behind a PROXY header with an address of the client's own.
//!
//! It reads a response as far as the figures need it: the status and the cookies; content is read and discarded.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// A response as far as the benchmark needs it.
#[derive(Debug, Default)]
pub struct PageAnswer {
    /// The status code of the response.
    pub status: u16,
    /// Cookies that it sets: name and value.
    pub cookies: Vec<String>,
    is_last: bool,
}

/// A connection to the server under test.
pub struct ProxiedConnection {
    stream: BufReader<TcpStream>,
}

impl ProxiedConnection {
    /// Connects for a client with this address.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(
        server: SocketAddr,
        client: impl Into<IpAddr>,
        patience: Duration,
    ) -> io::Result<ProxiedConnection> {
        let mut stream = TcpStream::connect_timeout(&server, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        let client = client.into();
        let (family, own) = match client {
            IpAddr::V4(_) => ("TCP4", "127.0.0.1"),
            IpAddr::V6(_) => ("TCP6", "::1"),
        };
        stream.write_all(
            format!("PROXY {family} {client} {own} 40000 {}\r\n", server.port()).as_bytes(),
        )?;
        Ok(ProxiedConnection { stream: BufReader::new(stream) })
    }

    /// Waits for so long, at most, for each part of the next responses.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(patience))
    }

    /// Sends a request and reads the response. `content`: of a POST.
    ///
    /// # Errors
    /// Those of the system; a response that cannot be read.
    pub fn send(
        &mut self,
        target: &str,
        fields: &str,
        content: Option<&str>,
    ) -> io::Result<PageAnswer> {
        let method = if content.is_some() { "POST" } else { "GET" };
        let length = content.map_or(String::new(), |content| {
            let form = "Content-Type: application/x-www-form-urlencoded\r\n";
            format!("{form}Content-Length: {}\r\n", content.len())
        });
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: crawled.test\r\nAccept: text/html,*/*\r\n{fields}{length}\r\n{}",
            content.unwrap_or_default()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.read()
    }

    fn read(&mut self) -> io::Result<PageAnswer> {
        let mut answer = PageAnswer::default();
        let (mut length, mut is_chunked) = (None, false);
        let mut line = String::new();
        self.line(&mut line)?;
        answer.status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        loop {
            self.line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse::<u64>().ok(),
                "transfer-encoding" => is_chunked = true,
                "connection" => answer.is_last = value.eq_ignore_ascii_case("close"),
                "set-cookie" => {
                    answer.cookies.extend(value.split(';').next().map(str::to_owned));
                }
                _ => {}
            }
        }
        let nowhere = &mut io::sink();
        if is_chunked {
            loop {
                self.line(&mut line)?;
                let bytes = u64::from_str_radix(line.split(';').next().unwrap_or("0"), 16);
                let bytes = bytes.map_err(|_| io::ErrorKind::InvalidData)?;
                io::copy(&mut (&mut self.stream).take(bytes), nowhere)?;
                self.line(&mut line)?;
                if bytes == 0 {
                    break;
                }
            }
        } else if let Some(bytes) = length {
            io::copy(&mut (&mut self.stream).take(bytes), nowhere)?;
        } else {
            io::copy(&mut self.stream, nowhere)?;
            answer.is_last = true;
        }
        Ok(answer)
    }

    fn line(&mut self, line: &mut String) -> io::Result<()> {
        line.clear();
        if self.stream.read_line(line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(())
    }
}

impl PageAnswer {
    /// Whether the server closes the connection after it.
    pub fn is_last(&self) -> bool {
        self.is_last
    }
}
