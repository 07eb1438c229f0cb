// Sets up OpenTelemetry, as docs/observability.md says: `node --import ./opentelemetry.mjs host.mjs`. What it exports to is in
// OTEL_SERVICE_NAME and OTEL_EXPORTER_OTLP_ENDPOINT.
import { NodeSDK } from "@opentelemetry/sdk-node";

const sdk = new NodeSDK();
sdk.start();

/** Exports what has not been exported. The loop is empty by then: the export keeps it alive. */
process.once("beforeExit", () => sdk.shutdown());
