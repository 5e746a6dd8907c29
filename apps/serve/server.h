// The server as a whole: transport, routes, models, and how it ends.
#pragma once

#include <coppice/error.h>

#include <string>

#include "http_server.h"
#include "mixes.h"
#include "models.h"
#include "routes.h"

namespace coppice::serve {

struct ServerOptions {
  HttpOptions http;
  ModelsOptions models;
  RoutesOptions routes;
  Mixes mixes;
  std::string log;            // a file for the access log, "-": stdout; empty: none
  double drain_seconds = 30;  // after the first signal, requests in work have this long to end
};

// Serves until SIGTERM or SIGINT: then no new requests, and the end when those in work have ended or their
// time is over; a second signal ends the process at once. The error: a model or an address that cannot be
// had.
Status serve(const ServerOptions& options);

}  // namespace coppice::serve
