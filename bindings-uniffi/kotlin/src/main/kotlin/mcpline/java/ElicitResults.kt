package mcpline.java

import mcpline.ElicitResult

/** What handlers of elicitations return. */
public object ElicitResults {
    /** The user agreed to open the URL, or submitted a form without values. */
    @JvmStatic
    public fun accept(): ElicitResult<Any> = accept(emptyMap<String, Any>())

    /** The user filled in the form: [content] is a record, a map or a `JsonObject`. */
    @JvmStatic
    public fun accept(content: Any): ElicitResult<Any> = ElicitResult.Accepted(content)

    /** The user declined. */
    @JvmStatic
    public fun decline(): ElicitResult<Any> = ElicitResult.Declined

    /** The user dismissed the question. */
    @JvmStatic
    public fun cancel(): ElicitResult<Any> = ElicitResult.Cancelled
}
