/** The prefix below which a handler is mounted, as frameworks report it. */

import type { IncomingMessage } from "node:http";

/** Properties that frameworks add to a request. */
interface RoutedRequest {
  /** Express and Connect: the URL before a router removed a prefix. */
  originalUrl?: string;
  /** Express: the prefix that routers have removed. */
  baseUrl?: string;
  /** Express: the route that the request matched, relative to `baseUrl`. */
  route?: { path?: unknown };
  /** Fastify: the route that the request matched. */
  routeOptions?: { url?: unknown };
}

/**
 * Returns the length of the prefix of a request's path below which the handler is mounted. A route for exactly this path
 * counts as its mount point.
 *
 * @param outer The request that the framework passed, which contains `request` in Fastify.
 */
export function basePathLength(request: IncomingMessage, outer: object): number {
  const { originalUrl, baseUrl, route, routeOptions } = outer as RoutedRequest;
  const path = pathOf(request.url ?? "/");
  if (originalUrl === undefined || routeOptions !== undefined) {
    return routeOptions?.url === path ? path.length : 0;
  }
  const prefix = baseUrl ?? removedPrefix(pathOf(originalUrl), path);
  const isExact = route?.path === path || (Array.isArray(route?.path) && route.path.includes(path));
  return isExact ? prefix.length + path.length : prefix.length;
}

/** Returns the prefix that Connect has removed from a path. What remains of the prefix itself is `/`. */
function removedPrefix(original: string, path: string): string {
  if (original.endsWith(path)) {
    return original.slice(0, original.length - path.length);
  }
  return path === "/" ? original : "";
}

function pathOf(url: string): string {
  const end = url.indexOf("?");
  return end < 0 ? url : url.slice(0, end);
}
