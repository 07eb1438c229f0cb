/** mcpline: clients and servers of the Model Context Protocol, for every revision and transport, on a Rust core. */

export { circuitBreaker, retry, toolPolicy } from "./client/built_in_middleware.js";
export type {
  BuiltInClientMiddleware,
  CircuitBreakerOptions,
  RetryOptions,
  ToolPolicyOptions,
} from "./client/built_in_middleware.js";
export type { ClientMiddleware, ClientNext, ClientRequest, ClientRequestChanges } from "./client/middleware.js";
export {
  auditLog,
  concurrencyLimit,
  rateLimit,
  redaction,
  responseCache,
  responseSizeLimit,
  serverToolPolicy,
} from "./built_in_middleware.js";
export type {
  AuditLogOptions,
  BuiltInMiddleware,
  ConcurrencyLimitOptions,
  LimitKey,
  RateLimitOptions,
  RedactionOptions,
  ResponseCacheOptions,
  ResponseSizeLimitOptions,
  ServerToolPolicyOptions,
} from "./built_in_middleware.js";
export type { Channel, ClientTransport, MessageReceiver } from "./channel.js";
export { OAuth } from "./client/auth.js";
export type {
  Auth,
  Credentials,
  Enterprise,
  Loopback,
  OAuthOptions,
  FunctionUserAgent,
  Terminal,
  Token,
  TokenStore,
  TokenRequest,
} from "./client/auth.js";
export { Client } from "./client/client.js";
export type {
  InputRequestContext,
  ElicitReturn,
  ConnectionEvent,
  Handlers,
  RootsReturn,
  SampleReturn,
  ToolCall,
  ToolCallOutcome,
} from "./client/host.js";
export type {
  ClientOptions,
  ConfigOptions,
  ClientSettings,
  HttpClientOptions,
  MemoryOptions,
  ListOptions,
  ProgramOptions,
  Progress,
  RequestOptions,
  WaitOptions,
} from "./client/options.js";
export type { ToolCallResult } from "./client/tool_data.js";
export { audio, bytesOf, embedded, image, resourceLink, text, textOf } from "./content.js";
export type { ContentOptions, PartialContents } from "./content.js";
export type { InputRequestOptions, Context, ElicitResult } from "./context.js";
export {
  AuthorizationFailedError,
  ClosedError,
  HandshakeFailedError,
  HandshakeTimedOutError,
  ConnectionLostError,
  HttpError,
  InputRequestFailedError,
  InternalError,
  InvalidResponseError,
  LimitExceededError,
  McplineError,
  NotSupportedError,
  RequestCancelledError,
  RequestTimedOutError,
  ResourceNotFoundError,
  RpcError,
  ServerExitedError,
  ServerUnreachableError,
  SessionExpiredError,
  ToolCallRefusedError,
  ToolError,
  TransportError,
  UrlElicitationRequiredError,
  UsageError,
} from "./errors.js";
export type { ErrorDetails, ErrorKind, TimeoutDetails, UrlElicitation } from "./errors.js";
export type { FailedHandler, OnError } from "./handler_errors.js";
export type {
  MessageKind,
  Middleware,
  MiddlewareMethods,
  MiddlewareParams,
  MiddlewareRequest,
  MiddlewareResult,
  MiddlewareReturn,
  MiddlewareScope,
  Next,
  RequestChanges,
} from "./middleware.js";
export type {
  ClientRequestRecord,
  OnClientRequestEnd,
  OnRequestEnd,
  RequestLogger,
  RequestRecord,
} from "./request_log.js";
export type { RouteContext, RouteHandler, RouteOptions, RouteReturn } from "./routes.js";
export { ExtendedResult, Extension } from "./extension.js";
export type { ClientExtension, ExtensionOptions, ReceivedResult } from "./extension.js";
export type { Caller, IntrospectionSettings, ResourceServerSettings, VerifiedCaller } from "./auth.js";
export type { HttpApp, MetadataEndpoint } from "./http.js";
export type { FastifyReplyLike, FastifyRequestLike, MountedRequestOptions } from "./outer_request.js";
export type * from "./protocol.js";
export type { ApiCredential, BasicCredential, OpenApiOperation, OpenApiOptions } from "./openapi.js";
export { elicitForm, elicitUrl, InputRequired, listRoots, sample } from "./input_requests.js";
export type { InputRequest } from "./input_requests.js";
export type {
  FromJsonSchema,
  SchemaOutput,
  SchemaInput,
  Schema,
  SchemaShape,
  StandardIssue,
  StandardResult,
  StandardSchema,
} from "./schemas.js";
export { Server } from "./server.js";
export type * from "./feature_options.js";
export type { ServerOptions } from "./server_options.js";
export type { ChannelOptions, HttpListener, UnixListener, ListenOptions, ServedChannel } from "./serving.js";
export type { Tls } from "./tls.js";
export { result, ToolResult } from "./tool_result.js";
export type { ResultMembers } from "./tool_result.js";
export type { CacheHint, HttpSettings, Rate, ServerSettings, UnixSettings } from "./settings.js";
export type { Bus, EventLog, LoggedEvents, SessionStore, Sharing } from "./sharing.js";
export { checkSharing } from "./sharing_check.js";
export type { BudgetStats, ClientStats, ServerStats } from "./stats.js";
