<?php

/**
 * When something of ours is broken.
 */

declare(strict_types=1);

?>
<h1>A fault of ours</h1>
<p class="summary">Something went wrong while this page was made. It has been noted.</p>
<p><a class="button" href="/">To the front page</a></p>
