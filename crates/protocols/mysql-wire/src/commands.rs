//! The codes of the commands of a client: the first byte of a packet with the sequence number 0.
//!
//! Source: "Command Phase" of the client/server protocol, and "Prepared Statements", "Replication Protocol". Not here:
//! the payload of each command.

/// Ends the connection; there is no response.
pub const COM_QUIT: u8 = 0x01;
/// Selects the default database.
pub const COM_INIT_DB: u8 = 0x02;
/// Executes a statement as text.
pub const COM_QUERY: u8 = 0x03;
/// Lists the columns of a table.
pub const COM_FIELD_LIST: u8 = 0x04;
/// Asks for some figures about the server, as a text.
pub const COM_STATISTICS: u8 = 0x09;
/// Ends another connection of the server.
pub const COM_PROCESS_KILL: u8 = 0x0c;
/// Checks that the server answers.
pub const COM_PING: u8 = 0x0e;
/// Logs in as another account on the same connection.
pub const COM_CHANGE_USER: u8 = 0x11;
/// Reads the binary log from a file and an offset.
pub const COM_BINLOG_DUMP: u8 = 0x12;
/// Registers the connection as that of a replica.
pub const COM_REGISTER_SLAVE: u8 = 0x15;
/// Prepares a statement for later executions.
pub const COM_STMT_PREPARE: u8 = 0x16;
/// Executes a prepared statement with its values.
pub const COM_STMT_EXECUTE: u8 = 0x17;
/// Sends a piece of a long value of a prepared statement; there is no response.
pub const COM_STMT_SEND_LONG_DATA: u8 = 0x18;
/// Forgets a prepared statement; there is no response.
pub const COM_STMT_CLOSE: u8 = 0x19;
/// Removes the long values and the cursor of a prepared statement.
pub const COM_STMT_RESET: u8 = 0x1a;
/// Allows or forbids several statements in one text.
pub const COM_SET_OPTION: u8 = 0x1b;
/// Reads rows from the cursor of a prepared statement.
pub const COM_STMT_FETCH: u8 = 0x1c;
/// Reads the binary log of MySQL from a set of GTIDs.
pub const COM_BINLOG_DUMP_GTID: u8 = 0x1e;
/// Puts the session back into its first state.
pub const COM_RESET_CONNECTION: u8 = 0x1f;
