// The processes behind `crema rows` (the records [first, last) of a database, for a host program that wants them
// itself) and `crema index` (which page of an LMDB holds which records).
#pragma once

namespace crema::host {

// One Job on stdin, Records or one LmdbIndex on stdout (proto/wire.proto). Each ends the process, or throws the error
// that it sent as Failed.
int serveRows();
int serveIndex();

}  // namespace crema::host
