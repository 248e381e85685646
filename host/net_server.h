// The server of `crema engine`: requests of one client on stdin, replies on stdout (proto/engine.proto). The Java
// classes of com.yahoo.ml.jcaffe start one of these processes per net, and one for pictures.
#pragma once

namespace crema::host {

// Answers until stdin ends, then ends the process: exit code 0. When stdin ends while a request is being answered, that
// is interrupted, and the process exits with 3 if it is still there three seconds later.
int serveNet();

}  // namespace crema::host
