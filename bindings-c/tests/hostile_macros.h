/* Macros that headers of other libraries define without a prefix, and that a program may have included before ours.
 * Each expands to what does not compile, wherever the name is used. */

#define MCPL_HOSTILE_MACRO ]macro[

/* Qt: qobjectdefs.h, qglobal.h. */
#define emit MCPL_HOSTILE_MACRO
#define signals MCPL_HOSTILE_MACRO
#define slots MCPL_HOSTILE_MACRO
#define foreach MCPL_HOSTILE_MACRO
#define forever MCPL_HOSTILE_MACRO

/* Windows: windef.h, wingdi.h, winerror.h, rpcndr.h, winuser.h. */
#define min(a, b) MCPL_HOSTILE_MACRO
#define max(a, b) MCPL_HOSTILE_MACRO
#define near MCPL_HOSTILE_MACRO
#define far MCPL_HOSTILE_MACRO
#define small MCPL_HOSTILE_MACRO
#define hyper MCPL_HOSTILE_MACRO
#define interface MCPL_HOSTILE_MACRO
#define IN MCPL_HOSTILE_MACRO
#define OUT MCPL_HOSTILE_MACRO
#define OPTIONAL MCPL_HOSTILE_MACRO
#define ERROR MCPL_HOSTILE_MACRO
#define NO_ERROR MCPL_HOSTILE_MACRO
#define DELETE MCPL_HOSTILE_MACRO
#define IGNORE MCPL_HOSTILE_MACRO
#define STRICT MCPL_HOSTILE_MACRO
#define DOMAIN MCPL_HOSTILE_MACRO
#define CONST MCPL_HOSTILE_MACRO
#define VOID MCPL_HOSTILE_MACRO
#define THIS MCPL_HOSTILE_MACRO
#define CALLBACK MCPL_HOSTILE_MACRO
#define ABSOLUTE MCPL_HOSTILE_MACRO
#define RELATIVE MCPL_HOSTILE_MACRO
#define OPAQUE MCPL_HOSTILE_MACRO
#define TRANSPARENT MCPL_HOSTILE_MACRO
#define GetMessage MCPL_HOSTILE_MACRO
#define SendMessage MCPL_HOSTILE_MACRO
#define GetObject MCPL_HOSTILE_MACRO
#define Yield MCPL_HOSTILE_MACRO

/* X11: X.h, Xlib.h. */
#define None MCPL_HOSTILE_MACRO
#define Bool MCPL_HOSTILE_MACRO
#define Status MCPL_HOSTILE_MACRO
#define True MCPL_HOSTILE_MACRO
#define False MCPL_HOSTILE_MACRO
#define Success MCPL_HOSTILE_MACRO
#define Always MCPL_HOSTILE_MACRO
#define Above MCPL_HOSTILE_MACRO
#define Below MCPL_HOSTILE_MACRO
#define Complex MCPL_HOSTILE_MACRO
#define Convex MCPL_HOSTILE_MACRO
#define CursorShape MCPL_HOSTILE_MACRO
#define Expose MCPL_HOSTILE_MACRO
#define FocusIn MCPL_HOSTILE_MACRO
#define FocusOut MCPL_HOSTILE_MACRO
#define KeyPress MCPL_HOSTILE_MACRO
#define KeyRelease MCPL_HOSTILE_MACRO
#define Unsorted MCPL_HOSTILE_MACRO

/* Unreal Engine: AssertionMacros.h; Apple: AssertMacros.h, objc.h. */
#define check(expression) MCPL_HOSTILE_MACRO
#define verify(expression) MCPL_HOSTILE_MACRO
#define ensure(expression) MCPL_HOSTILE_MACRO
#define require(expression, label) MCPL_HOSTILE_MACRO
#define TEXT(text) MCPL_HOSTILE_MACRO
#define nil MCPL_HOSTILE_MACRO
#define Nil MCPL_HOSTILE_MACRO
#define YES MCPL_HOSTILE_MACRO
#define NO MCPL_HOSTILE_MACRO

/* glib, gettext, complex.h, sys/sysmacros.h, Arduino, and compilers in their GNU modes. */
#define TRUE MCPL_HOSTILE_MACRO
#define FALSE MCPL_HOSTILE_MACRO
#define MIN(a, b) MCPL_HOSTILE_MACRO
#define MAX(a, b) MCPL_HOSTILE_MACRO
#define _(text) MCPL_HOSTILE_MACRO
#define I MCPL_HOSTILE_MACRO
#define complex MCPL_HOSTILE_MACRO
#define major(device) MCPL_HOSTILE_MACRO
#define minor(device) MCPL_HOSTILE_MACRO
#define abs(x) MCPL_HOSTILE_MACRO
#define round(x) MCPL_HOSTILE_MACRO
#define bit(b) MCPL_HOSTILE_MACRO
#undef unix
#define unix MCPL_HOSTILE_MACRO
#undef linux
#define linux MCPL_HOSTILE_MACRO
