// Browsers start no workers for pages that are opened as files. There a hidden frame does what the worker of the
// search would do: its script runs in the frame, and messages are events.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = frame.contentWindow
      const load = (source) =>
        new Promise((resolve, reject) => {
          const script = inside.document.createElement("script")
          script.src = new URL(source, document.baseURI)
          script.onload = resolve
          script.onerror = () => reject(new Error(`${script.src} cannot be read`))
          inside.document.body.append(script)
        })
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve())
      this.frame = frame
      this.ready = load(url)
    }

    postMessage(data) {
      this.ready.then(() => {
        const inside = this.frame.contentWindow
        inside.dispatchEvent(new inside.MessageEvent("message", { data }))
      })
    }

    terminate() {
      this.frame.remove()
    }
  }
}
