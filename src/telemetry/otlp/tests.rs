//! The whole way of each signal, to a collector on a real socket.
