// A Worker for pages opened as files, where browsers start none: the script runs in a hidden frame. The search needs it.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.body.appendChild(document.createElement("iframe"));
      this.frame.hidden = true;
      const inside = this.frame.contentWindow;
      this.ready = new Promise((done) => {
        inside.postMessage = (data) => this.tell(data);
        const script = inside.document.createElement("script");
        script.src = address;
        script.onload = done;
        inside.document.body.append(script);
      });
    }
    tell(data) {
      const event = new MessageEvent("message", { data });
      this.onmessage?.(event);
      this.dispatchEvent(event);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
