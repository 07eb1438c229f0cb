/* What this library was built with. `make install FEATURES="..."` writes it anew: see docs/guides/c.md. */

#ifndef MCPLINE_FEATURES_H
#define MCPLINE_FEATURES_H

/* Clients. */
#define MCPLINE_HAS_CLIENT 1
/* Servers over stdio; clients of programs and of Unix sockets. */
#define MCPLINE_HAS_STDIO 1
/* Servers on Unix sockets. */
#define MCPLINE_HAS_UNIX 1
/* Servers over HTTP; clients of URLs. */
#define MCPLINE_HAS_HTTP 1
/* `https` URLs. */
#define MCPLINE_HAS_TLS 1
/* Authorization. */
#define MCPLINE_HAS_AUTH 1

#endif
